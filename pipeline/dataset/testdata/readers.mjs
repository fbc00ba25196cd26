// Reads what was written with readers of others. Usage: node readers.mjs READERS parquet|jsonld FILE
// Bytes come as hex.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [readers, kind, file] = process.argv.slice(2)
const load = name => import(pathToFileURL(createRequire(readers + '/').resolve(name)))
let answer
if (kind === 'parquet') {
  const { parquetMetadata, parquetReadObjects } = await load('hyparquet')
  const { compressors } = await load('hyparquet-compressors')
  const body = fs.readFileSync(file)
  const buffer = body.buffer.slice(body.byteOffset, body.byteOffset + body.length)
  answer = await parquetReadObjects({ file: buffer, metadata: parquetMetadata(buffer), compressors, utf8: false })
} else {
  const { default: jsonld } = await load('jsonld')
  // Safe mode fails on whatever has no IRI, which other readers drop in silence.
  answer = await jsonld.expand(JSON.parse(fs.readFileSync(file, 'utf8')), { safe: true, base: 'https://example.org/' })
}
fs.writeFileSync(1, JSON.stringify(answer, (_, v) =>
  typeof v === 'bigint' ? Number(v) : v instanceof Uint8Array ? Buffer.from(v).toString('hex') : v))
