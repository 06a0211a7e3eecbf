package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRedisURLRedacted(t *testing.T) {
	for text, want := range map[redisURL]string{
		"redis://h:6379/0":                                "redis://h:6379/0",
		"rediss://ann:s3cret@h:6379?password=s3cret":      "rediss://h:6379",
		"redis-cluster://:s3cret@a:1,b:2":                 "redis-cluster://a:1,b:2",
		"redis-sentinel://a:1?master_name=m&password=s3c": "redis-sentinel://a:1",
		"unix://ann:s3cret@/run/redis.sock?db=1":          "unix:///run/redis.sock",
		"ann:s3c@ret@a:1,b:2":                             "a:1,b:2",
	} {
		assert.Equal(t, want, text.Redacted())
	}
}

func TestByteSizes(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "1023": 1023, "4KiB": 4096, "16MiB": 16 << 20, "1GiB": 1 << 30} {
		var b byteSize
		require.NoError(t, b.UnmarshalText([]byte(text)))
		assert.Equal(t, want, b)
	}
	assert.Equal(t, "16MiB", byteSize(16<<20).String())
}

func TestMemoryLimitOfAShare(t *testing.T) {
	whole := memoryLimit{percent: 90}.Bytes()
	assert.Greater(t, whole, int64(minMemoryLimit))
	assert.InDelta(t, float64(whole)/90, float64(memoryLimit{percent: 1}.Bytes()), 1000)
	assert.EqualValues(t, 5<<20, memoryLimit{size: 5 << 20}.Bytes())
}
