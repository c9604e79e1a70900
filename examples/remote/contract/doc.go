// Package contract is shared by the programs shop and worker: the message, and the topics of the broker.
package contract
