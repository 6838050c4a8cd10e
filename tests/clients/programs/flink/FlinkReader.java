// Flink's Kafka source: prints what the subscription in a folder gives. Usage: PROGRAM FOLDER PATTERN.

import java.io.FileReader;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

public class FlinkReader {
  public static void main(String[] arguments) throws Exception {
    var settings = new Properties();
    settings.load(new FileReader(arguments[0] + "/client.properties"));
    // Flink looks for topics each five minutes if nothing is set.
    settings.setProperty("partition.discovery.interval.ms", "1000");
    var source =
        KafkaSource.<String>builder()
            .setProperties(settings)
            .setTopicPattern(Pattern.compile(arguments[1]))
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setDeserializer(new Values())
            .build();
    var options = new Configuration();
    options.setString("restart-strategy.type", "fixed-delay");
    options.setString("restart-strategy.fixed-delay.attempts", "2147483647");
    options.setString("restart-strategy.fixed-delay.delay", "1s");
    var flink = StreamExecutionEnvironment.getExecutionEnvironment(options);
    flink.setParallelism(1);
    flink.enableCheckpointing(1000);
    flink
        .fromSource(source, WatermarkStrategy.noWatermarks(), "subscription")
        .map(FlinkReader::show)
        .sinkTo(new DiscardingSink<>());
    flink.execute("reader");
  }

  private static String show(String value) {
    System.out.println("record\t" + value);
    return value;
  }

  /** The values of all records but fences. */
  static class Values implements KafkaRecordDeserializationSchema<String> {
    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String> out) {
      if (record.headers().lastHeader("fence") == null) out.collect(new String(record.value()));
    }

    @Override
    public TypeInformation<String> getProducedType() {
      return TypeInformation.of(String.class);
    }
  }
}
