package queue

import "strings"

// CancelPrefix begins the payload of a notification that makes the leased endpoints of a queue check their claims;
// the queue's number follows.
const CancelPrefix = "cancel:"

// CancelReason returns the text that is recorded about a cancelled message.
func CancelReason(reason string) string { return strings.TrimSuffix("cancelled: "+reason, ": ") }
