// Java's KafkaProducer, exactly once: writes numbered records to the stream of a sender's folder.
// Usage: PROGRAM FOLDER TOPIC COUNT. A transaction has fifty records. Each is first written in one
// that is aborted, and again in one that is committed.

import java.io.FileReader;
import java.time.Instant;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class JavaWriter {
  private static final int BATCH = 50;

  public static void main(String[] arguments) throws Exception {
    var settings = new Properties();
    settings.load(new FileReader(arguments[0] + "/client.properties"));
    settings.setProperty("transactional.id", user(settings) + ".numbers");
    var count = Integer.parseInt(arguments[2]);
    var text = new StringSerializer();
    try (var producer = new KafkaProducer<>(settings, text, text)) {
      producer.initTransactions();
      for (var first = 0; first < count; first += BATCH) {
        write(producer, arguments[1], first);
        producer.abortTransaction();
        write(producer, arguments[1], first);
        producer.commitTransaction();
      }
    }
  }

  private static void write(KafkaProducer<String, String> producer, String topic, int first) {
    producer.beginTransaction();
    for (var number = first; number < first + BATCH; number++) {
      var record = "{\"ts\": \"" + Instant.now() + "\", \"n\": " + number + "}";
      producer.send(new ProducerRecord<>(topic, record));
    }
    // An aborted transaction is in the topic as well, if its records have left the program.
    producer.flush();
  }

  /** The user of Kafka, with whose name the ids of transactions begin. */
  private static String user(Properties settings) {
    var found = Pattern.compile("username=\"([^\"]+)\"").matcher(settings.getProperty("sasl.jaas.config"));
    if (!found.find()) throw new IllegalArgumentException("there is no user");
    return found.group(1);
  }
}
