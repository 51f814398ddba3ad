// Token mode with node-postgres: the read is asked of the replica itself; the
// primary is not needed.
//
// usage: node node_postgres.js write PRIMARY ID            prints the token
//        node node_postgres.js read|read_parameters TOKEN ID PRIMARY REPLICA...
//
// PRIMARY and REPLICA are "host port". A read prints where it was served, whether
// the row was there, and the token to carry on with.

'use strict'

const { Client } = require('pg')

const waitMs = 50

async function connect (address) {
  const [host, port] = address.split(' ')
  const client = new Client({ host, port, database: 'postgres' })
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

// The read behind the proof, in one message: a simple query, whose statements are
// one transaction; when require() fails the server skips the read. The only way to
// one round trip here, for a query with parameters is a message of its own: so
// what the read needs stands in the text, escaped.
async function readBehind (client, token, sql) {
  const results = await client.query(`${proof(client, token)}; ${sql}`)
  return results[1].rows
}

// The same for a read with parameters. node-postgres ends each such query with a
// Sync: on its own it is a transaction of its own, which runs although require()
// failed and, through a pooler, perhaps on another server. So BEGIN comes first.
// Costs two round trips more: BEGIN and the proof, the read, the end.
async function readBehindWithParameters (client, token, sql, parameters) {
  try {
    await client.query(`BEGIN; ${proof(client, token)}`)
    return (await client.query(sql, parameters)).rows
  } finally {
    await client.query('ROLLBACK')
  }
}

function proof (client, token) {
  return `CALL replica_pin.require(${client.escapeLiteral(token)}, ${waitMs})`
}

// What to carry instead of a token that a replica cannot compare. No replica can
// ever have a write that a failover lost (required is NULL): begin anew.
async function renew (primary, token) {
  const result = await primary.query(
    'SELECT coalesce(required, replica_pin.current_token()) AS token' +
    ' FROM replica_pin.route(token => $1)', [token])
  return result.rows[0].token
}

// { rows, where, token } with the token to carry. RP001: the next replica, then the
// primary, and the token stays. RP002: the primary renews it, once. `query` runs the
// read on a connection, behind the proof if there is a token.
async function read (replicas, connectPrimary, token, query) {
  let renewed = false
  for (const [name, client] of Object.entries(replicas)) {
    for (;;) {
      try {
        return { rows: await query(client, token), where: name, token }
      } catch (error) {
        if (!['RP001', 'RP002'].includes(error.code)) throw error
        if (error.code === 'RP001' || renewed) break
        token = await renew(await connectPrimary(), token)
        renewed = true
      }
    }
  }
  return { rows: await query(await connectPrimary(), null), where: 'primary', token }
}

async function main (command, ...args) {
  if (command === 'write') {
    console.log(await write(...args))
    return
  }
  const [token, note, primary, ...addresses] = args
  const opened = []
  const open = async address => {
    opened.push(await connect(address))
    return opened[opened.length - 1]
  }
  const replicas = {}
  for (const address of addresses) replicas[`r${opened.length + 1}`] = await open(address)

  const sql = 'SELECT id FROM note WHERE id = '
  const withText = async (client, token) => {
    const text = sql + client.escapeLiteral(note)
    return token === null ? (await client.query(text)).rows : readBehind(client, token, text)
  }
  const withParameters = async (client, token) => token === null
    ? (await client.query(sql + '$1', [note])).rows
    : readBehindWithParameters(client, token, sql + '$1', [note])

  const query = command === 'read' ? withText : withParameters
  const answer = await read(replicas, () => open(primary), token, query)
  console.log(answer.where, answer.rows.length, answer.token)
  for (const client of opened) await client.end()
}

main(...process.argv.slice(2))
