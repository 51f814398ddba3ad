// Token mode with node-postgres: the read is asked of the replica itself; the
// primary is not needed.
//
// usage: node node_postgres.js write PRIMARY ID            prints the token
//        node node_postgres.js read TOKEN ID PRIMARY REPLICA...
//
// PRIMARY and REPLICA are "host port user". A read prints where it was served,
// whether the row was there, and the token to carry on with.

'use strict'

const { Client, escapeLiteral } = require('pg')

const waitMs = 50

async function connect (address) {
  const [host, port, user] = address.split(' ')
  const client = new Client({ host, port, user, database: 'postgres' })
  await client.connect()
  return client
}

async function write (primary, note) {
  const client = await connect(primary)
  let token
  client.connection.on('parameterStatus', message => {
    if (message.parameterName === 'replica_pin.commit_token') token = message.parameterValue
  })
  await client.query('BEGIN; SET LOCAL replica_pin.report_commit_token = on')
  await client.query('INSERT INTO note (id) VALUES ($1)', [note])
  await client.query('COMMIT')
  await client.end()
  return token
}

// The read behind the proof. node-postgres sends a Sync with every query that has
// parameters, and waits for its answer: two such queries are two transactions, and
// the second runs although require() failed. So BEGIN comes first, in one message
// with the proof; text in it is escaped, a token is 42 characters that need none.
// That is a round trip for the proof and one for the read and its COMMIT. To have
// one round trip in all, put a read without parameters into the same message.
async function readBehind (client, token, sql, parameters) {
  try {
    await client.query(`BEGIN; CALL replica_pin.require(${literal(token)}, ${waitMs})`)
    return (await client.query(sql, parameters)).rows
  } finally {
    await client.query('ROLLBACK')
  }
}

// All in one message: one round trip. The values are in the text.
async function readBehindAtOnce (client, token, sql) {
  const results = await client.query(`CALL replica_pin.require(${literal(token)}, ${waitMs}); ${sql}`)
  return results[1].rows
}

function literal (token) {
  return token === null ? 'NULL' : escapeLiteral(token)
}

// What to carry instead of a token that a replica cannot compare; null when no
// replica can ever have it.
async function renew (primary, token) {
  const result = await primary.query(
    'SELECT required FROM replica_pin.route(token => $1)', [token])
  return result.rows[0].required
}
