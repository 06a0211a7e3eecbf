package access

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
)

// The hash algorithms, by their names in RabbitMQ's definitions.
const (
	SHA256 = "rabbit_password_hashing_sha256"
	SHA512 = "rabbit_password_hashing_sha512"
	MD5    = "rabbit_password_hashing_md5"
)

var digests = map[string]func([]byte) []byte{
	SHA256: func(b []byte) []byte { h := sha256.Sum256(b); return h[:] },
	SHA512: func(b []byte) []byte { h := sha512.Sum512(b); return h[:] },
	MD5:    md5Digest,
	"":     md5Digest,
}

func md5Digest(b []byte) []byte { h := md5.Sum(b); return h[:] }

const saltLength = 4

// Hash returns the hash of a new password, with SHA256.
func Hash(password string) []byte {
	salt := make([]byte, saltLength, saltLength+sha256.Size)
	rand.Read(salt)
	return append(salt, salted(SHA256, salt, password)...)
}

func salted(algorithm string, salt []byte, password string) []byte {
	return digests[algorithm](append(append(make([]byte, 0, saltLength+len(password)), salt...), password...))
}

// SetPassword sets the user's password. An empty password removes it.
func (u *User) SetPassword(password string) {
	u.PasswordHash, u.Algorithm = nil, SHA256
	if password != "" {
		u.PasswordHash = Hash(password)
	}
}

// unknownUser takes the place of a user who does not exist, so that verifying takes as
// long.
var unknownUser = User{PasswordHash: Hash("\x00"), Algorithm: SHA256}

// Verify reports whether the password is the user's. u is nil for a user who does not
// exist. An empty password is never right. Verify hashes with every algorithm: if it used
// only the user's own, the time it takes would reveal that the user exists.
func Verify(u *User, password string) bool {
	known := u != nil
	if !known || len(u.PasswordHash) <= saltLength {
		known, u = false, &unknownUser
	}
	salt, hash, same := u.PasswordHash[:saltLength], u.PasswordHash[saltLength:], false
	for _, algorithm := range []string{SHA256, SHA512, MD5, ""} {
		sum := salted(algorithm, salt, password)
		if algorithm == u.Algorithm {
			same = subtle.ConstantTimeCompare(sum, hash) == 1
		}
	}
	return same && known && password != ""
}
