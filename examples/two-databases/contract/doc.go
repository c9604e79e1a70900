// Package contract is the contract of the two services: the messages that cross from one database to the other, and
// their topics in the broker. It is all that they share. Each service could have its own copy, in its own language:
// only the names of the kinds and the fields of their JSON have to agree.
package contract
