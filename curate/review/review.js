"use strict"
const $ = id => document.getElementById(id)
let scheme = [], now = null, here = 0, busy = false, looking = Promise.resolve()

async function ask(path, body) {
  const change = body !== undefined
  const answer = await fetch(path, change ? {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)} : {})
  const value = await answer.json()
  if (!answer.ok) throw new Error(value.error)
  return value
}

function say(text, bad) {
  $("said").textContent = text
  $("said").className = bad ? "bad" : ""
}

// make builds an element; text is always text.
function make(tag, props, ...inside) {
  const e = Object.assign(document.createElement(tag), props)
  e.append(...inside)
  return e
}

function question(c, i) {
  const many = c.Kind === "multi"
  const set = make("fieldset", {id: "q" + i}, make("legend", {textContent: c.Title}))
  set.append(make("p", {id: "d" + i, textContent: (c.Description || "") + (many ? " One or more labels." : " One label.")}))
  set.setAttribute("aria-describedby", "d" + i)
  c.Labels.forEach((l, n) => {
    const input = make("input", {type: many ? "checkbox" : "radio", name: c.Name, value: l.Code})
    input.addEventListener("change", () => alone(set, c, l, input))
    const label = make("label", {}, input, " ")
    if (n < 9) label.append(make("kbd", {textContent: n + 1}), " ")
    label.append(l.Name)
    set.append(make("div", {}, label))
    if (l.Description) {
      const id = "d" + i + "-" + n
      set.lastChild.append(make("small", {id, textContent: l.Description}))
      input.setAttribute("aria-describedby", id)
    }
  })
  set.addEventListener("focusin", () => frame(i))
  return set
}

// alone keeps a label that stands alone alone.
function alone(set, c, l, input) {
  if (!input.checked || c.Kind !== "multi") return
  for (const other of set.querySelectorAll("input")) {
    const exclusive = c.Labels.find(x => x.Code === other.value).Exclusive
    if (other !== input && (l.Exclusive || exclusive)) other.checked = false
  }
}

function frame(i) {
  here = i
  document.querySelectorAll("fieldset").forEach((set, n) => set.classList.toggle("here", n === i))
}

function goTo(i) {
  const set = $("q" + i)
  ;(set.querySelector("input:checked") || set.querySelector("input")).focus()
  frame(i)
}

const chosen = c => [...document.querySelectorAll(`input[name="${c.Name}"]:checked`)].map(input => input.value)
const lacking = c => chosen(c).length === 0 && (c.Kind !== "multi" || c.Labels.some(l => l.Exclusive))

function veil(seen) {
  $("image").classList.toggle("seen", seen)
  $("show").setAttribute("aria-pressed", String(seen))
}

// offer lists the images that have an answer, the last one first.
function offer(done, shown) {
  $("earlier").hidden = done.length === 0
  const ids = done.map((id, i) => make("option", {value: id, textContent: `${i + 1}: ${id}`})).reverse()
  const first = make("option", {value: "", textContent: "an image"})
  if ($("back").dataset.list !== done.join()) $("back").replaceChildren(first, ...ids) // an open list stays open
  $("back").dataset.list = done.join()
  $("back").value = done.includes(shown) ? shown : ""
}

// render shows a state. What was chosen stays while the image is the same.
function render(state) {
  const before = now && now.post && now.post.id, post = state.post
  now = state
  const done = state.answered + state.skipped
  $("progress").max = Math.max(state.images, 1)
  $("progress").value = done
  $("rest").hidden = !state.rest
  $("undo").disabled = !state.undo
  offer(state.done, post && post.id)
  $("work").hidden = !post
  $("where").textContent = `${state.annotator}: ${done} of ${state.images} done` + (post && post.batch ? `, batch ${post.batch}` : "")
  if (!post) {
    $("image").removeAttribute("src")
    $("text").textContent = ""
    const gone = state.gone ? ` ${state.gone} of the images are not in the dataset any more.` : ""
    say(state.stale ? `${state.stale} images wait: their posts were last seen live too long ago. Run rehydrate recheck.`
      : "All done. Thank you." + gone)
    return
  }
  if (post.id === before) return
  veil(false)
  $("image").src = post.source
  $("image").alt = "the image of post " + post.id
  $("words").hidden = !post.text
  $("words").open = false
  $("text").textContent = post.text
  $("care").checked = post.care
  for (const input of document.querySelectorAll("fieldset input")) input.checked = (post.given[input.name] || []).includes(input.value)
  goTo(0)
}

async function change(path, body, said) {
  if (busy) return // a key that was pressed twice
  busy = true
  await looking // a look that is under way must not swallow the key, nor show an older state after this one
  await show(path, body, said)
  busy = false
}

function look() {
  if (!busy) looking = show("state", undefined, "That image was taken out of the dataset.")
}

async function show(path, body, said) {
  try {
    const state = await ask(path, body)
    const other = (now && now.post && now.post.id) !== (state.post && state.post.id)
    render(state)
    if (said && other && state.post) say(`${said} Image ${state.answered + state.skipped + 1} of ${state.images}.`)
  } catch (err) {
    say(err instanceof TypeError ? "The program does not answer: is it still running?" : err.message, true)
  }
}

function save() {
  const missing = scheme.findIndex(lacking)
  if (missing >= 0) {
    goTo(missing)
    return say(`${scheme[missing].Title} has no answer yet.`, true)
  }
  const labels = Object.fromEntries(scheme.map(c => [c.Name, chosen(c)]))
  change("answer", {id: now.post.id, care: $("care").checked, labels}, "Saved.")
}

const skip = () => change("answer", {id: now.post.id, care: $("care").checked, skip: true}, "Skipped.")
const undo = () => change("undo", {}, "Taken back.")

// pick chooses label n of the question with the frame. A question that takes one label then makes room for the next.
function pick(n) {
  const input = $("q" + here).querySelectorAll("input")[n]
  if (!input) return
  input.focus()
  input.click()
  if (input.type === "radio" && here + 1 < scheme.length) goTo(here + 1)
}

function press(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !now) return
  const key = event.key
  if (key === "Enter" && event.target.matches("input")) {
    event.preventDefault()
    if (event.target.closest("fieldset") && here + 1 < scheme.length) goTo(here + 1)
    else save()
    return
  }
  if (!$("keys").checked || event.target.matches("select")) return
  const keys = {b: () => $("rest").hidden || $("rested").click(), u: () => now.undo && undo()}
  if (now.post) Object.assign(keys, {v: () => veil(true), s: skip, c: () => $("care").click()})
  if (/^[1-9]$/.test(key) && now.post) keys[key] = () => pick(key - 1)
  if (!keys[key] || event.repeat) return
  event.preventDefault()
  keys[key]()
}

async function start() {
  scheme = await ask("scheme")
  $("questions").append(...scheme.map(question))
  document.addEventListener("keydown", press)
  document.addEventListener("keyup", event => event.key === "v" && $("keys").checked && veil(false))
  addEventListener("blur", () => veil(false))
  $("show").addEventListener("click", () => veil($("show").getAttribute("aria-pressed") !== "true"))
  $("form").addEventListener("submit", event => { event.preventDefault(); save() })
  $("skip").addEventListener("click", skip)
  $("undo").addEventListener("click", undo)
  $("back").addEventListener("change", event => event.target.value && change("back", {id: event.target.value}, "Answered before."))
  $("rested").addEventListener("click", () => change("rest", {}, "Welcome back."))
  await change("state")
  // A post that is taken out of the workspace goes from the page, whoever sits before it.
  setInterval(look, 2000)
}

start().catch(err => say(err.message, true))
