// Flink's Kafka sink, exactly once: writes numbered records to the stream of a sender's folder.
// Usage: PROGRAM FOLDER TOPIC COUNT. Half-way the job fails once, and goes on from its checkpoint.

import java.io.FileReader;
import java.time.Duration;
import java.time.Instant;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Pattern;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

public class FlinkWriter {
  private static final AtomicBoolean FAILED = new AtomicBoolean();

  public static void main(String[] arguments) throws Exception {
    var settings = new Properties();
    settings.load(new FileReader(arguments[0] + "/client.properties"));
    var count = Long.parseLong(arguments[2]);
    var sink =
        KafkaSink.<String>builder()
            .setKafkaProducerConfig(settings)
            .setBootstrapServers(settings.getProperty("bootstrap.servers"))
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(user(settings) + ".numbers")
            // In milliseconds. Flink's own is an hour, and the broker takes a minute at most.
            .setProperty("transaction.timeout.ms", "60000")
            .setRecordSerializer(
                KafkaRecordSerializationSchema.<String>builder()
                    .setTopic(arguments[1])
                    .setValueSerializationSchema(new SimpleStringSchema())
                    .build())
            .build();
    var again = new Configuration().set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
    again.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofSeconds(1));
    try (var environment = StreamExecutionEnvironment.createLocalEnvironment(1, again)) {
      // Each checkpoint commits a transaction. What is not committed is not read.
      environment.enableCheckpointing(500);
      environment.fromSequence(0, count - 1).map(n -> record(n, count)).sinkTo(sink);
      environment.execute();
    }
  }

  private static String record(long number, long count) throws Exception {
    Thread.sleep(20);
    if (number == count / 2 && !FAILED.getAndSet(true)) {
      throw new IllegalStateException("half-way");
    }
    return "{\"ts\": \"" + Instant.now() + "\", \"n\": " + number + "}";
  }

  /** The user of Kafka, with whose name the ids of transactions begin. */
  private static String user(Properties settings) {
    var found = Pattern.compile("username=\"([^\"]+)\"").matcher(settings.getProperty("sasl.jaas.config"));
    if (!found.find()) throw new IllegalArgumentException("there is no user");
    return found.group(1);
  }
}
