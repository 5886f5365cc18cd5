// Package mail delivers queued mails over SMTP. It retries until the server accepts them or days have passed.
// Without a server it sends no mails but stores them, so that the operator can read them.
package mail
