// Says what OpenCV sees in raw pictures. Usage: node opencv.mjs READERS CASCADE < pictures.json > answers.json
// Each picture is a file of RGBA rows with a width and a height, and settings of detectMultiScale.
import fs from 'node:fs'
import crypto from 'node:crypto'
import { createRequire } from 'node:module'

const [readers, cascade] = process.argv.slice(2)
const require = createRequire(readers + '/')
const cv = require('@techstark/opencv-js') // not awaited: its own then resolves to itself for ever
if (!cv.Mat) await new Promise(ready => { cv.onRuntimeInitialized = ready })
cv.FS_createDataFile('/', 'cascade.xml', fs.readFileSync(cascade), true, false, false)
const classifier = new cv.CascadeClassifier()
if (!classifier.load('cascade.xml')) throw new Error('the cascade is not read')

const digest = mat => crypto.createHash('sha256').update(mat.data).digest('hex')
const answers = []
for (const p of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  const rgba = new cv.Mat(p.height, p.width, cv.CV_8UC4)
  rgba.data.set(fs.readFileSync(p.file))
  const [rgb, grey, hsv, mean, deviation] = Array.from({ length: 5 }, () => new cv.Mat())
  let begin = performance.now()
  cv.cvtColor(rgba, rgb, cv.COLOR_RGBA2RGB)
  cv.cvtColor(rgb, grey, cv.COLOR_RGB2GRAY)
  cv.cvtColor(rgb, hsv, cv.COLOR_RGB2HSV)
  cv.meanStdDev(hsv, mean, deviation)
  const [hue, saturation, value] = mean.data64F
  cv.meanStdDev(grey, mean, deviation)
  const answer = { grey: digest(grey), hsv: digest(hsv), faces: [], milliseconds: [performance.now() - begin],
    numbers: [mean.data64F[0], deviation.data64F[0], value, saturation, hue] }
  for (const d of p.detections) {
    const found = new cv.RectVector()
    begin = performance.now()
    classifier.detectMultiScale(grey, found, d.Scale, d.Neighbors, 0, new cv.Size(d.MinSize, d.MinSize))
    answer.milliseconds.push(performance.now() - begin)
    answer.faces.push(Array.from({ length: found.size() }, (_, i) => { const r = found.get(i); return [r.x, r.y, r.width, r.height] }))
    found.delete()
  }
  answers.push(answer)
  for (const m of [rgba, rgb, grey, hsv, mean, deviation]) m.delete()
}
fs.writeFileSync(1, JSON.stringify(answers))
process.exit(0)
