package queue

import "strings"

// CancelPrefix begins the payload of a notification that asks the leased endpoints of a queue to look at their claims;
// the queue's number follows.
const CancelPrefix = "cancel:"

// CancelReason is what is recorded about a message that was cancelled.
func CancelReason(reason string) string { return strings.TrimSuffix("cancelled: "+reason, ": ") }
