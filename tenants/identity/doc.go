// Package identity says who someone is: people by password and login, programs
// by API key.
package identity
