// Package contract is what the programs shop and worker both know: the message, and the topics of the broker.
package contract
