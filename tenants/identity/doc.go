// Package identity says who somebody is: people by password and login, programs
// by API key.
package identity
