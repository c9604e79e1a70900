// Package live keeps open pages up to date by server-sent events.
//
// # Promise
//
// A [Hub] has one loop for each kind of page, and only while somebody looks at a page of that kind. A loop reads one
// page at a time, at most once in a Pace, however many viewers the page has: fifty viewers cost what one costs. Pages
// of one kind take turns. A page that takes long to read is read less often, so that a loop reads for a tenth of the
// time at most.
//
// A viewer gets the whole page when it connects, and then the fragments that have changed. A viewer that reads slowly
// misses versions, never the newest. A comment every Beat keeps the connection alive. Before each write the stream asks
// whether its viewer may still see the page, and ends if not. A stream ends after Longest; the browser connects again
// by itself.
//
// # Failures
//
// If a page cannot be read, its viewers are told why, and the loop tries again. More viewers than Most get 503. Close
// ends all streams; browsers then try again by themselves.
package live
