// Package wake signals the loops of a process that there may be work for them.
//
// # Promise
//
// Every loop reads the database by itself, once a poll interval. This package only makes that faster, and its signals
// may be lost: an Alarm wakes a loop at a set time, the Hub of a process passes wake-ups on to its alarms, and the
// Notifier sends them to the hubs of other processes by NOTIFY.
//
// # States
//
// An Alarm has idle waiters, and a time when it wakes a waiter by itself. A wake-up that finds no idle waiter is kept
// for the next one.
//
// # Failures
//
// A notification that is not sent or not received costs at most a poll interval. After a listener has connected again
// it calls Hub.Missed, which wakes all loops.
package wake
