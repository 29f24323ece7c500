"""Commands of Redis that do not exist here. Rules about them are kept and have no effect.

So rules that were written for Redis work here too, such as those that its manual gives for Sentinel. The
names are those that Redis 8.6 knows and we do not.
"""

_NAMES = """
    asking bitcount bitfield bitfield_ro bitop bitpos bzmpop bzpopmax bzpopmin cluster delex digest
    eval eval_ro evalsha evalsha_ro fcall fcall_ro geoadd geodist geohash geopos georadius
    georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore getbit hdel hexists
    hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex hincrby hincrbyfloat hkeys hlen hmget
    hmset hotkeys hpersist hpexpire hpexpireat hpexpiretime hpttl hrandfield hscan hset hsetex
    hsetnx hstrlen httl hvals lcs lolwut migrate module msetex pfadd pfcount pfdebug pfmerge
    pfselftest readonly readwrite restore-asking sadd scard sdiff sdiffstore setbit sinter
    sintercard sinterstore sismember smembers smismember smove sort sort_ro spop srandmember srem
    sscan sunion sunionstore trimslots vadd vcard vdim vemb vgetattr vinfo vismember vlinks
    vrandmember vrange vrem vsetattr vsim zadd zcard zcount zdiff zdiffstore zincrby zinter
    zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex
    zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange
    zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion zunionstore function|delete
    function|dump function|help function|kill function|list function|load function|restore
    function|stats latency|doctor latency|graph script|debug script|exists script|help script|kill
    script|load
"""
_CONTAINERS = ("cluster", "hotkeys", "module")  # with any subcommand

FOREIGN = frozenset(_NAMES.split())


def is_foreign(name: str) -> bool:
    """Tell whether a command or subcommand exists in Redis only. `name` is in small letters: script|kill."""
    return name in FOREIGN or name.partition("|")[0] in _CONTAINERS
