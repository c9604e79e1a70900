// Command part3 is the third part of the tutorial, docs/tutorial/3-time.md: an order that is not paid ends.
package main
