// Command roles makes the database of the tutorial's shop, and its two roles. It is for an administrator of the server.
package main
