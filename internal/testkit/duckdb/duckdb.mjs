// Runs the SQL given on stdin in an in-memory DuckDB and prints the rows of its last
// statement as a JSON array of objects. Blobs come as hex; integers beyond 2^53 as strings.
//
//   node duckdb.mjs READERS_DIR < query.sql
//
// READERS_DIR is the folder that holds node_modules/@duckdb/node-api.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const require = createRequire(resolve(process.argv[2], 'package.json'));
const { DuckDBInstance } = require('@duckdb/node-api');

const plain = (_, v) => {
  if (typeof v === 'bigint') return Number.isSafeInteger(Number(v)) ? Number(v) : v.toString();
  return v;
};
const unblob = (v) => {
  if (v instanceof Uint8Array) return Buffer.from(v).toString('hex');
  if (Array.isArray(v)) return v.map(unblob);
  if (v !== null && typeof v === 'object') {
    return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, unblob(x)]));
  }
  return v;
};

const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
const reader = await connection.runAndReadAll(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(reader.getRowObjectsJS().map(unblob), plain));
connection.closeSync();
