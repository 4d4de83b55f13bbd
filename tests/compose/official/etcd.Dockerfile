# As the official image of etcd is laid out: programs in /usr/local/bin, root, no shell, nothing else
# but the libraries that Debian's build of it needs.
ARG SERVER
FROM ${SERVER} AS debian
USER root
RUN mkdir -p /out/usr/local/bin && cp /usr/bin/etcd /usr/bin/etcdctl /out/usr/local/bin \
    && for lib in $(ldd /usr/bin/etcd /usr/bin/etcdctl | grep -oE '/[^ )]+\.so[^ )]*' | sort -u); \
       do mkdir -p "/out$(dirname "$lib")" && cp -L "$lib" "/out$lib"; done
FROM scratch
COPY --from=debian /out/ /
ENV PATH=/usr/local/bin
CMD ["etcd"]
