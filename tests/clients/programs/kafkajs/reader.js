// kafkajs: prints what the subscription in a folder gives. Usage: PROGRAM FOLDER.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const { Kafka, logLevel } = require('kafkajs')

const folder = process.argv[2]
const read = name => fs.readFileSync(path.join(folder, name), 'utf8')
const settings = Object.fromEntries(
  read('librdkafka.conf').trim().split('\n').map(line => {
    const at = line.indexOf('=')
    return [line.slice(0, at), line.slice(at + 1)]
  })
)
const pattern = new RegExp(JSON.parse(read('subscription.json')).topic_pattern)
const kafka = new Kafka({
  brokers: settings['bootstrap.servers'].split(','),
  ssl: { ca: [read('ca.pem')] },
  sasl: {
    mechanism: 'scram-sha-512',
    username: settings['sasl.username'],
    password: settings['sasl.password'],
  },
  logLevel: logLevel.NOTHING,
})
const pause = () => new Promise(resolve => setTimeout(resolve, 1000))

const show = async ({ topic, message }) => {
  if (!('fence' in (message.headers || {}))) console.log(`record\t${topic}\t${message.value}`)
}

// kafkajs looks for topics once, when it subscribes. So we look, and begin anew when they change.
async function topics(admin) {
  return (await admin.listTopics()).filter(name => pattern.test(name)).sort()
}

async function readUntilTheyChange(admin, now) {
  const consumer = kafka.consumer({
    groupId: settings['group.id'],
    allowAutoTopicCreation: false,
  })
  let crashed = false
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    console.log(`error\t${payload.error.message}`)
    crashed = true
  })
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: now, fromBeginning: true })
    await consumer.run({ eachMessage: show })
    while (!crashed && (await topics(admin)).join() === now.join()) await pause()
  } finally {
    await consumer.disconnect()
  }
}

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  for (;;) {
    const now = await topics(admin)
    try {
      if (now.length > 0) await readUntilTheyChange(admin, now)
    } catch (error) {
      console.log(`error\t${error.message}`)
    }
    await pause()
  }
}

main()
