package queuefacts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRefusal(t *testing.T) {
	for _, kind := range []Type{UnknownType, Classic, Quorum} {
		_, refused := Settings{Type: kind}.Refusal()
		require.False(t, refused, kind)
	}
	for want, s := range map[Code]Settings{
		IsStream:        {Type: Stream},
		IsExclusive:     {Type: Classic, Exclusive: true},
		IsAutoDelete:    {Type: Classic, AutoDelete: true},
		HasExpires:      {Type: Quorum, Expires: true},
		HasSingleActive: {Type: Quorum, SingleActive: true},
		DropsHead:       {Type: Quorum, Overflow: DropHead},
		RejectsPublish:  {Type: Quorum, Overflow: RejectPublish},
		DelaysRetries:   {Type: Quorum, DelayedRetry: true},
	} {
		r, refused := s.Refusal()
		require.True(t, refused, want)
		require.Equal(t, want, r.Code)
		require.NotEmpty(t, r.Reason)
		require.NotEmpty(t, r.Instead)
	}
}
