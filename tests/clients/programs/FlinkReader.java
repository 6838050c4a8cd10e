// Flink's Kafka source: prints what the subscription in a folder gives. Usage: PROGRAM FOLDER PATTERN.

import java.io.FileReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetResetStrategy;

public class FlinkReader {
  public static void main(String[] arguments) throws Exception {
    var settings = new Properties();
    settings.load(new FileReader(arguments[0] + "/client.properties"));
    while (true) {
      try {
        read(settings, Pattern.compile(arguments[1]));
      } catch (Exception error) {
        // A job that goes on from its own state asks for the denied topic again, and fails each
        // time. So a new job: it goes on from what the group has committed.
        System.out.println("error\t" + reason(error));
        Thread.sleep(1000);
      }
    }
  }

  @SuppressWarnings("deprecation") // The source's own methods still ask for it.
  private static void read(Properties settings, Pattern topics) throws Exception {
    var source =
        KafkaSource.<String>builder()
            .setProperties(settings)
            .setTopicPattern(topics)
            // In milliseconds. Else it looks for new topics each five minutes.
            .setProperty("partition.discovery.interval.ms", "1000")
            .setStartingOffsets(OffsetsInitializer.committedOffsets(OffsetResetStrategy.EARLIEST))
            .setDeserializer(new Shown())
            .build();
    var alone = new Configuration().set(RestartStrategyOptions.RESTART_STRATEGY, "none");
    try (var environment = StreamExecutionEnvironment.createLocalEnvironment(1, alone)) {
      // The group commits its offsets at each checkpoint.
      environment.enableCheckpointing(1000);
      environment.fromSource(source, WatermarkStrategy.noWatermarks(), "access").print();
      environment.execute();
    }
  }

  private static String reason(Throwable error) {
    return error.getCause() == null ? error.toString() : reason(error.getCause());
  }

  /** A record as a line; nothing of a fence. */
  private static class Shown implements KafkaRecordDeserializationSchema<String> {
    @Override
    public void deserialize(ConsumerRecord<byte[], byte[]> found, Collector<String> lines) {
      if (found.headers().lastHeader("fence") == null && found.value() != null) {
        var value = new String(found.value(), StandardCharsets.UTF_8);
        lines.collect("record\t" + found.topic() + "\t" + value);
      }
    }

    @Override
    public TypeInformation<String> getProducedType() {
      return Types.STRING;
    }
  }
}
