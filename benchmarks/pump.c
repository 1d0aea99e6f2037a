/* A bare pump: what copying both ways through a PTY costs at the least. No job control, no signals. */
#define _GNU_SOURCE
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void all(int fd, const char *data, ssize_t size) {
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written <= 0) return;
        data += written;
        size -= written;
    }
}

int main(int argc, char **argv) {
    struct termios saved, raw;
    struct winsize size;
    int master, status = 0;
    static char buffer[65536];
    if (argc < 2 || tcgetattr(0, &saved)) return 2;
    ioctl(0, TIOCGWINSZ, &size);
    pid_t child = forkpty(&master, NULL, &saved, &size);
    if (child < 0) return 1;
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    raw = saved;
    cfmakeraw(&raw);
    tcsetattr(0, TCSANOW, &raw);
    struct pollfd fds[2] = {{master, POLLIN, 0}, {0, POLLIN, 0}};
    for (;;) {
        if (poll(fds, 2, -1) < 0) continue;
        if (fds[0].revents) {
            ssize_t got = read(master, buffer, sizeof buffer);
            if (got <= 0) break;
            all(1, buffer, got);
        }
        if (fds[1].revents) {
            ssize_t got = read(0, buffer, sizeof buffer);
            if (got <= 0) break;
            all(master, buffer, got);
        }
    }
    tcsetattr(0, TCSANOW, &saved);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
