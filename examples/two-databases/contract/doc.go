// Package contract is what the two services have agreed on: the messages that cross from one database to the other, and
// the topics of the broker on which they do. It is all that they share. Each service could have its own copy, in its
// own language: what counts are the names of the kinds and the fields of their JSON.
package contract
