// Package mail delivers the mails that wait to be sent: over SMTP, again and again
// until the server takes them or days have gone by. Without a server nothing is sent;
// the mails are kept for the person who runs the product to read.
package mail
