// Package reddit is the network client for Reddit and image hosts. It asks Reddit's API what became of posts
// (Client.Ask) and what their subreddits are (Client.About), and downloads images from the policy's hosts
// (Client.Download).
//
// # What it promises
//
//   - Only a well-formed answer is evidence. A failed request, HTML, truncated JSON or an empty listing is
//     Unanswered: no verdict on any post, and CommunityUnknown of a subreddit.
//   - Every attempt is paced, retries and token requests included: the policy's rate, Reddit's rate-limit headers,
//     and any Retry-After. In no stretch of a minute do more requests reach Reddit than the policy allows a minute,
//     and in none of Reddit's windows more than its headers grant. No wait is silent, and none is longer than 15
//     minutes: what asks for more ends the request, and an *Unreachable says when it is worth asking again.
//   - What may pass is tried again: a rate limit, 5xx, a broken connection, and of the API also HTML and half a JSON
//     document with status 200. That is at most three times a call, within 20 minutes, after random pauses that grow;
//     an image that hangs or trickles is given up after about a minute. Each is a debug line, and Calls counts them.
//   - A host that fails is asked less and less often. After five calls of Reddit in a row that failed, Ask and About
//     return an *Unreachable, which stops the run, and for a quarter of an hour nothing is asked.
//   - An image host that fails for ten minutes without giving one image is given up (GivenUp): each further image of it
//     gets the fault failed/host_given_up at once, while other hosts go on. It is asked again in the next run, and in
//     this one when the time has passed that it names, or else an hour after a rate limit, 15 minutes after the rest.
//   - The bearer token goes to oauth.reddit.com and nowhere else; client id and secret to the token endpoint and
//     nowhere else; imgur's client id to api.imgur.com, which without one is not asked. None of them, nor the
//     operator's user name, reaches an error or a log.
//   - Of an answer that is not used the status is told, and the reason that this package gives it. Its text is told
//     nowhere: it can echo the request or name a person.
//   - Only https on port 443 of an allowed host is asked, redirects included, and only public addresses are dialled,
//     whatever a name resolves to at that moment. An address that ConnectTo names is the one exception. Redirects of
//     the API are not followed, and cookies are forgotten.
//   - A page or album of imgur is never fetched: its API says which files it shows. After a 429 of that API that names
//     no time it is left alone for a day: five overruns in a month shut an app out.
//   - Bodies and headers are bounded in length and time, also unpacked ones, and never cut: one that is too long or
//     ends early is an error. Each has a reason of its own.
//   - User names, titles and permalinks do not leave the package, and no Fault, error or log line holds the URL of an
//     image. The detail of a Fault is of fixed texts: no address, port or time, which would make two runs differ.
//   - A proxy that makes no connection is named as the proxy. Its address, without the password, is in errors, in logs
//     and in GivenUp; what it would answer again, as a 407, is not asked for again.
//
// # How a request travels
//
//	Ask, About, Download   classify the last answer
//	polite.Retry           again after 429, 5xx, useless answers and broken connections, with jitter; no redirect
//	call                   waits at its host's polite.Gate, once for each attempt, counts it, and reads the answer
//	identified             User-Agent; bearer, Basic or imgur's credentials for their one host
//	guarded                attempt deadline, least progress
//	unrepeated             no repetition by net/http itself
//	http.Transport         timeouts, TLS, dial guard
//
// A Client is safe for concurrent use; API requests go out one at a time.
//
// # Limitations
//
// An imgur link that names several ids is refused, and one to an image of an album by its #number is taken as a link
// to the album. What other programs do with the same client id is seen only in Reddit's headers. HTTP/1.1 only.
package reddit
