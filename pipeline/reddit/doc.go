// Package reddit is the only network client of rehydrate. It asks Reddit's API what
// became of posts (Client.Look) and downloads their images from the hosts that the
// policy allows (Client.Download).
//
// # What it promises
//
//   - Only a well-formed answer is evidence. A failed request, HTML, truncated JSON or an
//     empty listing is Unanswered: no verdict on any post.
//   - Every attempt is paced, retries and token requests included: the policy's rate, what
//     Reddit's rate-limit headers ask for, and any Retry-After. No wait is silent; one that
//     would be longer than 15 minutes ends the request with an error instead, and New
//     refuses a policy whose own rates would lead to one.
//   - A host that fails is asked less and less often, and not at all after five calls in a
//     row that ended in a rate limit, 5xx or no answer: Look returns an *Unreachable, which
//     stops the run, and Download the fault failed/host_unreachable. After a quarter of an
//     hour it is asked again.
//   - The bearer token goes to oauth.reddit.com and nowhere else; client id and secret go
//     to the token endpoint and nowhere else. None of them reaches an error or a log, nor does
//     the operator's user name, even where an answer echoes them: of an answer only a few
//     fields of JSON or the title of a page are shown, scrubbed and shortened.
//   - Only https on port 443 of an allowed host is asked, redirects included, and only
//     public addresses are dialled. An address that ConnectTo names is the one exception.
//   - Bodies are bounded and never cut: one that is too long or ends early is an error.
//   - User names, titles and permalinks do not leave the package, and no Fault, error or
//     log line holds the URL of an image. The detail of a Fault is of fixed texts: no
//     address, port or time, by which the outcomes of two runs would differ.
//
// # How a request travels
//
//	Look, Download          classify the last answer
//	go-retryablehttp        again after 429, 5xx and broken connections; backs off with jitter
//	paced                   waits for its turn, once for each attempt
//	credentialed, anonymous User-Agent; for the API, bearer or Basic credentials for their one host
//	guarded                 attempt deadline, least progress
//	http.Transport          timeouts, TLS, dial guard
//
// A Client is safe for concurrent use; API requests go out one at a time.
//
// # Limitations
//
// Imgur's pages and albums need its own API and are refused. The reason why a post is
// absent (private or banned subreddit) is not asked for.
package reddit
