# As the official image of Redis is laid out: root, an entry point that gives the folder and itself to
# the user "redis", no /data owned beforehand.  The registry is not asked: the server is Debian's.
ARG SERVER
FROM ${SERVER}
USER root
RUN rm -rf /data && mkdir /data && printf '%s\n' '#!/bin/sh' 'set -e' \
    'if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then' \
    '  find . \! -user redis -exec chown redis "{}" +' \
    '  exec setpriv --reuid redis --regid redis --clear-groups "$0" "$@"' 'fi' 'exec "$@"' \
    > /usr/local/bin/docker-entrypoint.sh && chmod 755 /usr/local/bin/docker-entrypoint.sh
VOLUME /data
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["redis-server"]
