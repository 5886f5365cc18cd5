// Package identity authenticates people by password and login, and programs by API key.
package identity
