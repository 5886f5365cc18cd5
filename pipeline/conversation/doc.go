// Package conversation is the one model of a conversation that every wire format
// converts to and the only one that modules see. It keeps the client's bytes
// beside what it understood of them, so that what nobody changed leaves as it came.
package conversation
