// Package wake tells the loops of a process that there may be work for them.
//
// # Promise
//
// Every loop looks at the database by itself, once a poll interval. What this package adds makes that faster and may be
// lost: an Alarm wakes a loop at a known time, the Hub of a process passes wake-ups on to its alarms, and the Notifier
// sends them to the hubs of other processes by NOTIFY.
//
// # States
//
// An Alarm has waiters that are idle, and the time at which it wakes one of them unasked. A wake-up that finds no idle
// waiter is kept for the next one.
//
// # Failures
//
// A notification that is not sent or not heard costs at most a poll interval. After a listener has connected again it
// calls Hub.Missed, which wakes everything.
package wake
