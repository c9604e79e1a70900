// Package uihost serves the pages of eddaui as a program of its own: the command "edda ui".
//
// # Promise
//
// Without authentication it listens on a loopback address only, answers only requests that name one, and lets in only a
// browser that has come with the token of the printed address. The token works once: it is exchanged for a cookie that
// scripts cannot read and other sites cannot send. The name of the cookie has the port, so that programs on one machine
// do not replace the cookies of each other. A browser sends it to all ports of its host, which no cookie can avoid.
//
// With header:NAME a request counts only if it comes from a trusted proxy, has the header once, and names as its host
// an address, localhost or a name of Options.Hosts: a script in a browser beside the proxy can set the header, but it
// comes under the name of its own site.
//
// After five wrong passwords for a name the next try has to wait: a second, then twice as long each time, up to a
// minute.
//
// Of several databases each has its pages under its name, with a pool and streams of its own. One that does not answer
// says so on its pages, and the others go on.
//
// # Failures
//
// An [ErrUsage] says that the options contradict each other, before anything has begun. Serve returns nil when its
// context has ended, after requests that are under way.
//
// Reading order: host.go, access.go, backoff.go.
package uihost
