// The token of a commit, with node-postgres.
//
// usage: node node_postgres.js id   (the server is that of PGHOST, PGPORT, ...)

'use strict'

const { Client } = require('pg')

// Runs a statement in a transaction. The token of its commit, or null. An event
// comes with the commit or not at all, so there is no older token to mistake.
async function commit (client, sql, parameters) {
  let token = null
  const listener = message => {
    if (message.parameterName === 'replica_pin.commit_token') token = message.parameterValue
  }
  client.connection.on('parameterStatus', listener)
  try {
    await client.query('BEGIN; SET LOCAL replica_pin.report_commit_token = on')
    await client.query(sql, parameters)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.connection.off('parameterStatus', listener)
  }
  return token
}

// Where may the next read go? No replica is the primary.
async function route (client, token) {
  const result = await client.query(
    'SELECT replica, reason FROM replica_pin.route(token => $1)', [token])
  return result.rows[0]
}

async function main (note) {
  const client = new Client()
  await client.connect()
  let carried = await commit(client, 'INSERT INTO note (id) VALUES ($1)', [note])
  console.log('token', carried)
  const { replica, reason } = await route(client, carried)
  console.log(`read on ${replica ?? 'primary'}, ${reason}`)

  const token = await commit(client, "UPDATE note SET body = '' WHERE id = $1 AND false", [note])
  carried = token ?? carried
  console.log(token ? 'token' : 'no new token, carry', carried)
  await client.end()
}

main(process.argv[2])
