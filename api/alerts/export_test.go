package alerts

// Sign is sign for tests.
var Sign = sign
