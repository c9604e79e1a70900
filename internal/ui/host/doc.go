// Package uihost serves the pages of eddaui as a program of its own: the command "edda ui".
//
// # Promise
//
// Without authentication it listens only on a loopback address, answers only requests whose host is one, and admits
// only a browser that has come with the token of the printed address. The token works once: it is exchanged for a
// cookie that scripts cannot read and other sites cannot send. The name of the cookie has the port, so that programs
// on one machine do not replace each other's cookies. A browser sends it to all ports of its host, which no cookie
// can avoid.
//
// With header:NAME a request is accepted only if it comes from a trusted proxy, has the header once, and its host is
// an address, localhost or a name in Options.Hosts: a script in a browser beside the proxy can set the header, but
// its requests have the name of its own site.
//
// After five wrong passwords for a name the next try has to wait: a second, then twice as long each time, up to a
// minute.
//
// With several databases each has its pages under its name, with a pool and streams of its own. If one does not
// answer, its pages say so, and the others work.
//
// # Failures
//
// An [ErrUsage] means that the options contradict each other; it is returned before anything has begun. Serve returns
// nil after its context and the requests in flight have ended.
//
// Reading order: host.go, access.go, backoff.go.
package uihost
