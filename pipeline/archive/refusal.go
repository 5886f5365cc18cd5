package archive

import "github.com/google/uuid"

// SealError seals what a provider said of an exchange that it refused: it may repeat
// what was asked.
func (k *Key) SealError(exchange uuid.UUID, text []byte) []byte {
	return k.Seal(aboutError(exchange), text)
}

// OpenError returns what SealError sealed for the exchange, or ErrSealed.
func (k *Key) OpenError(exchange uuid.UUID, sealed []byte) ([]byte, error) {
	return k.Open(aboutError(exchange), sealed)
}

func aboutError(exchange uuid.UUID) []byte {
	return append([]byte("error of exchange "), exchange[:]...)
}
