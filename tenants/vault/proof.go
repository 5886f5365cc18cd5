package vault

// aboutProof is the context and the content of a database's proof.
const aboutProof = "master key of this database"

// Proof returns bytes by which OpensProof recognizes the master key.
func (v *Vault) Proof() ([]byte, error) { return v.SealAbout(aboutProof, aboutProof) }

// OpensProof returns ErrSealedElsewhere if a proof is from an unknown master key.
func (v *Vault) OpensProof(proof []byte) error {
	_, _, err := v.OpenAbout(aboutProof, proof)
	return err
}

// ResealProof is ResealAbout for a proof.
func (v *Vault) ResealProof(proof []byte) (sealed []byte, was bool, err error) {
	return v.ResealAbout(aboutProof, proof)
}
