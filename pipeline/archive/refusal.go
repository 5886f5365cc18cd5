package archive

import "github.com/google/uuid"

// SealError seals a provider's error text for an exchange, because it may repeat content of the request.
func (k *Key) SealError(exchange uuid.UUID, text []byte) []byte {
	return k.Seal(aboutError(exchange), text)
}

// OpenError returns the text that SealError sealed for the exchange, or ErrSealed.
func (k *Key) OpenError(exchange uuid.UUID, sealed []byte) ([]byte, error) {
	return k.Open(aboutError(exchange), sealed)
}

func aboutError(exchange uuid.UUID) []byte {
	return append([]byte("error of exchange "), exchange[:]...)
}
