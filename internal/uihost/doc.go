// Package uihost serves the pages of eddaui as a program of its own: the command "edda ui".
//
// # Promise
//
// Without authentication it listens on a loopback address only, answers only requests that name one, and lets in only a
// browser that has come with the token of the printed address. The token works once: it is exchanged for a cookie that
// scripts cannot read and other sites cannot send.
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
