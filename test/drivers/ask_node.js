// usage: ask_node.js ask|pin token
//
// One line of JSON for each question: [value, call, outcome]. The outcome is
// what the call answered, as text; "error SQLSTATE file" when the server refused,
// with the source file that did; "client" when the driver did not send it.

'use strict'

const { Client } = require('pg')

const calls = {
  is_pinned: 'SELECT replica_pin.is_pinned($1)::text',
  route: 'SELECT reason FROM replica_pin.route($1)',
  is_any_pinned: 'SELECT replica_pin.is_any_pinned($1)::text',
  route_all: 'SELECT reason FROM replica_pin.route_all($1)',
  'route token': 'SELECT reason FROM replica_pin.route(NULL, $1)',
  'route_all token': "SELECT reason FROM replica_pin.route_all(ARRAY['free'], $1)",
  has_replayed: 'SELECT replica_pin.has_replayed($1)::text',
  token_lsn: 'SELECT replica_pin.token_lsn($1)::text'
}

const pins = {
  pin: 'SELECT replica_pin.pin($1)',
  pin_all: 'SELECT replica_pin.pin_all($1)'
}

const values = (token) => ({
  token,
  'token in lower case': token.toLowerCase(),
  array: ['a', 'b'],
  'empty array': [],
  'array of null': [null],
  'array with undefined': ['a', undefined],
  'array with empty text': ['a', ''],
  'array of numbers': [1, 2],
  'nested array': [['a'], ['b']],
  'ragged array': [['a'], ['b', 'c']],
  null: null,
  undefined,
  'text undefined': 'undefined',
  'empty text': '',
  number: 42,
  boolean: true,
  'not a number': NaN,
  date: new Date(0),
  object: { token },
  'text of an object': String({ token }),
  'a function': () => token,
  buffer: Buffer.from(token),
  binary: Buffer.from([0xff, 0xfe, 0x00, 0x80]),
  'zero byte': token + '\0',
  'lone surrogate': '\ud800',
  quotes: "'; SELECT 'x",
  backslashes: "\\' \\\\ \\x00",
  JSON: JSON.stringify({ token }),
  'JSON list': JSON.stringify([token]),
  'array literal': '{' + token + '}',
  percent: '%s $1 %31',
  unicode: 'naïve 用户 🗝',
  'wide digits': token.replaceAll('0', '０'),
  'token and newline': token + '\n',
  'two tokens': token + ',' + token,
  'cut token': token.slice(0, 41),
  'bare LSN': '0/16B3748',
  long: 'x'.repeat(200000)
})

async function outcome (client, sql, value) {
  try {
    const { rows } = await client.query({ text: sql, values: [value], rowMode: 'array' })
    return rows[0][0] === null ? 'null' : rows[0][0]
  } catch (error) {
    return error.code && error.file ? `error ${error.code} ${error.file}` : 'client'
  }
}

async function main (mode, token) {
  const client = new Client({ database: 'postgres' })
  await client.connect()
  const asked = mode === 'pin' ? { ...pins, ...calls } : calls
  for (const [label, value] of Object.entries(values(token))) {
    for (const [call, sql] of Object.entries(asked)) {
      console.log(JSON.stringify([label, call, await outcome(client, sql, value)]))
    }
  }
  await client.end()
}

main(process.argv[2], process.argv[3])
