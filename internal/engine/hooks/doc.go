// Package hooks calls functions of the user's that see messages go out and transactions end, so that whatever they do
// costs no message and no process.
package hooks
