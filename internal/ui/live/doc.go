// Package live keeps open pages up to date by server-sent events.
//
// # Promise
//
// A [Hub] has one loop for each kind of page, and only while a page of that kind is open. A loop reads one page at a
// time, at most once per Pace, however many viewers the page has: fifty viewers cost as much as one. Pages of one
// kind take turns. A page that is slow to read is read less often, so that a loop reads for a tenth of the time at
// most.
//
// A viewer gets the whole page when it connects, and then the fragments that have changed. A viewer that reads slowly
// misses versions, never the newest. A comment every Beat keeps the connection alive. Before each write the stream
// checks whether its viewer may still see the page, and ends if not. A stream ends after Longest; the browser then
// connects again by itself.
//
// # Failures
//
// If a page cannot be read, its viewers get the reason, and the loop tries again. More viewers than Most get 503.
// Close ends all streams; browsers then try again by themselves.
package live
