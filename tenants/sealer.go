package tenants

// Sealer seals secrets for what about names. What is sealed for one thing opens for no
// other.
type Sealer interface {
	SealAbout(about, secret string) ([]byte, error)

	// OpenAbout reports whether the newest master key sealed the secret.
	OpenAbout(about string, sealed []byte) (secret string, newest bool, err error)
}
