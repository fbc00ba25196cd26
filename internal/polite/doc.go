// Package polite is how every HTTP client of the program behaves towards the servers that it asks: how fast it asks
// (Gate, Window), how it reads that a server wants to be left alone (RetryAfter), what it asks again and when
// (Repeatable, Permanent, Retry), and by which way it reaches a host (Dialer: directly, through a proxy, or at another
// address that the operator names).
//
// It promises of each request that goes through it:
//
//   - Every attempt waits for its turn, repetitions included. No pause is longer than MaxWait: what asks for more ends
//     the request.
//   - No redirect is followed, so that no host but the one that was named learns anything.
//   - The answer is bounded in length, and its reading by the caller's deadline.
//
// What a server's answer means is decided by its clients: pipeline/reddit for Reddit and image hosts, study/endpoint
// for servers of models. Client joins these parts for a server that a user names by URL; Post asks it one question.
package polite
