// Package reddit is the only network client of rehydrate. It asks Reddit's API what became of posts (Client.Ask) and
// what their subreddits are (Client.About), and downloads images from the hosts that the policy allows
// (Client.Download).
//
// # What it promises
//
//   - Only a well-formed answer is evidence. A failed request, HTML, truncated JSON or an empty listing is
//     Unanswered: no verdict on any post, and CommunityUnknown of a subreddit.
//   - Every attempt is paced, retries and token requests included: the policy's rate, Reddit's rate-limit headers,
//     and any Retry-After. In no stretch of a minute do more requests reach Reddit than the policy allows a minute,
//     and in none of Reddit's windows more than its headers grant, but for one every 15 minutes where they name a
//     reset further away: a wrong one must not stop a run. No wait is silent. A Retry-After of more than 15 minutes
//     ends the request with an error instead, and New refuses a policy whose own rates would lead to a longer wait.
//   - What may pass is tried again: a rate limit, 5xx, a broken connection, and of the API also HTML and half a JSON
//     document with status 200. That is at most three times a call, within 20 minutes, after random pauses that grow;
//     an image that hangs or trickles is given up after about a minute. Each is a debug line, and Calls counts them.
//   - A host that fails is asked less and less often, and for a quarter of an hour not at all after five calls in a
//     row that ended in a rate limit, 5xx or no answer, or for the API in an answer of no use: Ask and About return
//     an *Unreachable, which stops the run and says what came last, and Download the fault failed/host_unreachable.
//     Of an image host's 5xx and unexplained 403s it takes ten, as each may be the trouble of one image.
//   - The bearer token goes to oauth.reddit.com and nowhere else; client id and secret to the token endpoint and
//     nowhere else; imgur's client id to api.imgur.com, which without one is not asked. None of them reaches an error
//     or a log, nor does the operator's user name, even where an answer echoes them: of an answer only a few fields
//     of JSON or the title of a page are shown, scrubbed and shortened.
//   - Only https on port 443 of an allowed host is asked, redirects included, and only public addresses are dialled,
//     whatever a name resolves to at that moment. An address that ConnectTo names is the one exception. Redirects of
//     the API are not followed, and cookies are forgotten.
//   - A page or album of imgur is never fetched: its API says which files it shows, and a file is asked for at
//     i.imgur.com only. After a 429 of that API that names no time it is left alone for a day: five overruns in a
//     month shut an app out.
//   - Bodies are bounded, also unpacked ones, and never cut: one that is too long or ends early is an error. So are a
//     header of more than 64 KiB, less than 1 KiB in 10 s, and an attempt of more than a minute. Each has a reason of
//     its own.
//   - User names, titles and permalinks do not leave the package, and no Fault, error or log line holds the URL of an
//     image. The detail of a Fault is of fixed texts: no address, port or time, which would make two runs differ.
//
// # How a request travels
//
//	Ask, About, Download   classify the last answer
//	go-retryablehttp       again after 429, 5xx, useless answers and broken connections, with jitter
//	paced                  waits for its turn, once for each attempt, and counts it
//	identified             User-Agent; bearer, Basic or imgur's credentials for their one host
//	guarded                attempt deadline, least progress
//	unrepeated             of images: no repetition by net/http itself
//	http.Transport         timeouts, TLS, dial guard
//
// A Client is safe for concurrent use; API requests go out one at a time.
//
// # Limitations
//
// Of an imgur link that names several ids, or an image of an album by its #number, neither is understood: the first
// is refused, the second taken as a link to the album. Reddit counts by client id, and what other programs do with
// the same id is seen only in its headers. Ten images in a row that a host cannot serve look like a host in trouble.
// HTTP/1.1 only.
package reddit
