package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// ConnectAMQP10 opens an AMQP 1.0 connection to one of the nodes, in the virtual host of the address. It tries each once, and begins with the
// node that was reached last. The caller owns it.
func (c *Cluster) ConnectAMQP10(ctx context.Context, purpose string) (*amqp.Conn, error) {
	conn, _, err := eachNode(ctx, c, func(node string) (*amqp.Conn, error) { return c.dialAMQP10(ctx, node, purpose) })
	if err != nil {
		return nil, fmt.Errorf("with AMQP 1.0: %w", err)
	}
	return conn, nil
}

func (c *Cluster) dialAMQP10(ctx context.Context, node, purpose string) (*amqp.Conn, error) {
	u, err := amqp091.ParseURI(node)
	if err != nil {
		return nil, err
	}
	o := &amqp.ConnOptions{HostName: "vhost:" + u.Vhost, ContainerID: c.name + ": " + purpose, IdleTimeout: 2*holdHeartbeat + serverSilence, // it is the time without a frame
		Properties: map[string]any{"product": "Curfew", "connection_name": c.name + ": " + purpose}, SASLType: amqp.SASLTypePlain(u.Username, u.Password)}
	if slices.Contains(u.AuthMechanism, "external") {
		o.SASLType = amqp.SASLTypeExternal("")
	}
	if u.Scheme == "amqps" {
		if o.TLSConfig, err = tlsOf(u); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	return amqp.Dial(limited, u.Scheme+"://"+net.JoinHostPort(u.Host, strconv.Itoa(u.Port)), o)
}

// tlsOf is what the parameters of an address say about TLS, as the AMQP 0-9-1 client reads them.
func tlsOf(u amqp091.URI) (*tls.Config, error) {
	config := &tls.Config{ServerName: u.ServerName, MinVersion: tls.VersionTLS12}
	config.ServerName = cmp.Or(config.ServerName, u.Host)
	if u.CACertFile != "" {
		pem, err := os.ReadFile(u.CACertFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	if u.CertFile != "" && u.KeyFile != "" {
		own, err := tls.LoadX509KeyPair(u.CertFile, u.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
