#!/bin/sh
# One node of Kafka, a broker or a controller. It prepares its data folder at the first start.
set -eu
java @/etc/secure-streams/format.args
exec java @/etc/secure-streams/heap.args -XX:+UseG1GC -Djava.awt.headless=true \
    -Dlog4j2.configurationFile="${KAFKA_LOG_SETTINGS:-/opt/kafka/config/log4j2.yaml}" \
    -Dkafka.logs.dir=/var/lib/kafka/data/logs \
    -cp '/opt/kafka/libs/*' kafka.Kafka /etc/secure-streams/server.properties
