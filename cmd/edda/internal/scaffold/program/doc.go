// Command program asks for money and waits for it.
package main
