package node

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/cmd/internal/settings"
	"curfew/integration/testenv"
)

func TestAMQPListeners(t *testing.T) {
	ca := testenv.NewAuthority(t)
	c := settings.Settings{AMQPAddr: "127.0.0.1:0", AMQPSAddr: "127.0.0.1:0", TLSClientAuth: "none"}
	c.TLSCert, c.TLSKey = ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	files, err := tlsFiles(&c, zap.NewNop())
	require.NoError(t, err)
	listeners, err := amqpListeners(t.Context(), &c, files)
	require.NoError(t, err)
	require.Len(t, listeners, 2)
	defer listeners[0].Close()
	defer listeners[1].Close()
	served := make(chan error)
	go func() {
		nc, err := listeners[1].Accept()
		if err == nil {
			err = nc.(*tls.Conn).HandshakeContext(t.Context())
			nc.Close()
		}
		served <- err
	}()
	nc, err := tls.Dial("tcp", listeners[1].Addr().String(), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"})
	require.NoError(t, err)
	defer nc.Close()
	assert.NoError(t, <-served)

	only := settings.Settings{AMQPAddr: "127.0.0.1:0"}
	listeners, err = amqpListeners(t.Context(), &only, nil)
	require.NoError(t, err)
	require.Len(t, listeners, 1)
	listeners[0].Close()
}

func TestTLSNeedsItsFiles(t *testing.T) {
	for _, incomplete := range []settings.Settings{{AMQPSAddr: "127.0.0.1:0"}, {TLSClientAuth: "require"}, {TLSCert: "tls.crt"}, {TLSKey: "tls.key"}} {
		_, err := tlsFiles(&incomplete, zap.NewNop())
		assert.ErrorContains(t, err, "need CURFEW_TLS_CERT and CURFEW_TLS_KEY, both of them")
	}
	_, err := readInputs(&settings.Settings{HTTPSAddr: "127.0.0.1:0"}, zap.NewNop())
	assert.ErrorContains(t, err, "need CURFEW_TLS_CERT and CURFEW_TLS_KEY")
	_, err = tlsFiles(&settings.Settings{AMQPAddr: "127.0.0.1:0", TLSCert: "none.pem", TLSKey: "none.pem"}, zap.NewNop())
	assert.ErrorContains(t, err, "none.pem")
}
