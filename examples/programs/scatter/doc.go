// Command scatter is a saga that asks several suppliers for a price at once, keeps the best offer, and answers when all
// have spoken or half a minute has passed. The answers come back by the instance that asked, so they carry no key.
package main
